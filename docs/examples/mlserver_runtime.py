"""A runtime for MLServer that answers for a release's models in ONNX Runtime.

Each model has a folder with `model-settings.json`:

    {"name": "demo-gsu", "implementation": "mlserver_runtime.OnnxModel", "parameters": {"uri": "/models/demo/gsu.onnx"}}

docs/operations.md shows how Atelier uses it, and try_model_server.py runs both.
"""

import onnxruntime
from mlserver import MLModel
from mlserver.codecs import NumpyCodec
from mlserver.types import InferenceRequest, InferenceResponse, MetadataTensor, ResponseOutput
from mlserver.utils import get_model_uri

DATATYPES = {"tensor(int64)": "INT64", "tensor(float)": "FP32"}


class OnnxModel(MLModel):
    async def load(self) -> bool:
        self.session = onnxruntime.InferenceSession(await get_model_uri(self.settings))
        self.inputs = [describe(port) for port in self.session.get_inputs()]
        self.outputs = [describe(port) for port in self.session.get_outputs()]
        return True

    async def predict(self, payload: InferenceRequest) -> InferenceResponse:
        inputs = {tensor.name: NumpyCodec.decode_input(tensor) for tensor in payload.inputs}
        names = [output.name for output in payload.outputs or self.outputs]
        arrays = self.session.run(names, inputs)
        # Not `NumpyCodec.encode_output`, which gives an array of one axis a second one.
        outputs = [
            ResponseOutput(name=name, datatype="FP32", shape=array.shape, data=array.ravel().tolist())
            for name, array in zip(names, arrays)
        ]
        return InferenceResponse(model_name=self.name, outputs=outputs)


def describe(port) -> MetadataTensor:
    # An axis with a name instead of a length may have any.
    shape = [axis if isinstance(axis, int) else -1 for axis in port.shape]
    return MetadataTensor(name=port.name, datatype=DATATYPES[port.type], shape=shape)
