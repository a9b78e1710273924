"""FastAPI and ONNX Runtime, in the usual way: one request, one run, in FastAPI's thread pool.

    python benches/peers/fastapi_server.py data/speed/random data/speed/whole gsu 8091
"""

import sys

import uvicorn
from common import Model
from fastapi import FastAPI
from pydantic import BaseModel

model = Model(sys.argv[1], sys.argv[2], sys.argv[3], threads=0)
app = FastAPI()


class Request(BaseModel):
    customer: str
    outfit: list[str | None]
    k: int = 20


@app.post("/complete")
def complete(request: Request) -> dict:
    return model.complete([request.model_dump()])[0]


if __name__ == "__main__":
    uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[4]), log_level="warning")
