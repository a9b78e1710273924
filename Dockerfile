# Three images from one build: `atelier` for the CPU, `atelier-gpu` for NVIDIA GPUs, `atelier-refresh` for deploy/refresh.
#
#   docker build --target atelier -t atelier:0.1.0 .
#   docker run --rm -p 127.0.0.1:8080:8080 atelier:0.1.0 demo            # the demo world; it prints a link and an API key
#   docker run --rm -v atelier:/var/lib/atelier -p 127.0.0.1:8080:8080 atelier:0.1.0
#
# The build fetches everything: a running container needs no network except its database's.

FROM rust:1.95-slim-bookworm AS build
WORKDIR /src
COPY . .
RUN --mount=type=cache,target=/usr/local/cargo/registry \
    --mount=type=cache,target=/src/target \
    cargo build --profile dist --locked --package atelier --package atelier-training --bins \
    && cp target/dist/atelier target/dist/atelier-training /

# ONNX Runtime's library from its wheel, pinned by hashes.
FROM python:3.12-slim-bookworm AS onnxruntime
COPY deploy/onnxruntime-cpu.txt /tmp/requirements.txt
RUN pip install --no-cache-dir --no-deps --require-hashes --only-binary=:all: \
        --target /tmp/wheels --requirement /tmp/requirements.txt \
    && mkdir /opt/onnxruntime \
    && cp /tmp/wheels/onnxruntime/capi/libonnxruntime.so.* /opt/onnxruntime/libonnxruntime.so

# The same with the CUDA provider and the CUDA libraries that it loads. The driver comes from the host.
FROM python:3.12-slim-bookworm AS onnxruntime-gpu
COPY deploy/onnxruntime-gpu.txt /tmp/requirements.txt
RUN pip install --no-cache-dir --no-deps --require-hashes --only-binary=:all: \
        --target /tmp/wheels --requirement /tmp/requirements.txt \
    && mkdir /opt/onnxruntime \
    && mv /tmp/wheels/onnxruntime/capi/libonnxruntime.so.* /opt/onnxruntime/libonnxruntime.so \
    && mv /tmp/wheels/onnxruntime/capi/libonnxruntime_providers_cuda.so \
          /tmp/wheels/onnxruntime/capi/libonnxruntime_providers_shared.so /opt/onnxruntime/ \
    && find /tmp/wheels/nvidia -name 'lib*.so*' -exec mv -t /opt/onnxruntime {} +

FROM debian:bookworm-slim AS base
RUN useradd --system --uid 10001 --home-dir /var/lib/atelier --create-home atelier && install -d -o atelier -g atelier /models
COPY --from=build /atelier /usr/local/bin/atelier
# A new named volume mounted here starts with the demo release.
COPY --chown=atelier models/demo /models/demo
ENV ORT_DYLIB_PATH=/opt/onnxruntime/libonnxruntime.so \
    LD_LIBRARY_PATH=/opt/onnxruntime \
    ATELIER__SERVER__ADDRESS=0.0.0.0:8080 \
    DATABASE_URL=sqlite:/var/lib/atelier/atelier.db \
    ATELIER__MODELS__FOLDER=/models
USER atelier
WORKDIR /var/lib/atelier
EXPOSE 8080
HEALTHCHECK --interval=10s --timeout=12s --start-period=60s --retries=3 CMD ["atelier", "check-health"]
ENTRYPOINT ["atelier"]
CMD ["serve"]

FROM base AS atelier-gpu
COPY --from=onnxruntime-gpu /opt/onnxruntime /opt/onnxruntime
# Refuse to start without a working GPU: a silent fallback to the CPU would only show as higher latency.
ENV ATELIER__ENGINE__DEVICE=cuda

FROM base AS atelier-refresh
COPY --from=onnxruntime /opt/onnxruntime /opt/onnxruntime
COPY --from=build /atelier-training /usr/local/bin/atelier-training
COPY deploy/refresh /usr/local/bin/atelier-refresh
HEALTHCHECK NONE
ENTRYPOINT ["atelier-refresh"]
CMD ["/models"]

# The last stage is the default of `docker build .`.
FROM base AS atelier
COPY --from=onnxruntime /opt/onnxruntime /opt/onnxruntime
