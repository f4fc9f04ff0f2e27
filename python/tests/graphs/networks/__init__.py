"""What exporters write."""
from ..generate import random_graph as network
