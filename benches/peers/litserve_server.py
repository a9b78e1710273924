"""LitServe with its dynamic batching: up to 64 requests of at most 10 ms share a run.

    python benches/peers/litserve_server.py data/speed/random data/speed/whole gsu 8092
"""

import sys

import litserve
from common import Model


class Complete(litserve.LitAPI):
    def setup(self, device):
        self.model = Model(sys.argv[1], sys.argv[2], sys.argv[3], threads=0)

    def decode_request(self, request):
        return request

    def predict(self, requests):
        return self.model.complete(requests)

    def batch(self, requests):
        return requests

    def unbatch(self, answers):
        return answers

    def encode_response(self, answer):
        return answer


if __name__ == "__main__":
    api = Complete(max_batch_size=64, batch_timeout=0.01, api_path="/complete")
    server = litserve.LitServer(api, accelerator="cpu", track_requests=False)
    server.run(host="127.0.0.1", port=int(sys.argv[4]), generate_client_file=False, log_level="warning")
