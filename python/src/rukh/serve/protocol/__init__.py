"""The Open Inference Protocol, version 2, over HTTP: requests read and replies written. Knows no server and no model."""

from .replies import write_reply as write_reply
from .requests import InferRequest as InferRequest
from .requests import WantedOutput as WantedOutput
from .requests import read_request as read_request
from .texts import TextRequest as TextRequest
from .texts import read_text_request as read_text_request
