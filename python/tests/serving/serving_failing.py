"""A replica whose process can be told to fail."""

import os
import pathlib

import rukh
from rukh.serve import ModelReplica


class FailingReplica(ModelReplica):
    """Its runs fail from when the file `sign` has its process in it."""

    def __init__(self, name, model, sign):
        self._sign = pathlib.Path(sign)
        super().__init__(name, model)
        run = self._session.run

        def fail_or_run(*arguments):
            if self._sign.exists() and self._sign.read_text() == str(os.getpid()):
                raise rukh.DeviceError("the device is lost")
            return run(*arguments)

        self._session.run = fail_or_run
