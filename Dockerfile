# gstorch on NVIDIA DeepStream. Not built or run by us yet; see docs/containers.md.
#
#   docker build -t gstorch:deepstream .
#   docker run --rm --gpus all --read-only --tmpfs /tmp -v "$PWD/clips:/data:ro" -v gstorch-out:/out gstorch:deepstream \
#       run /data/door.mp4 --model /data/detector.onnx --output /out/door.mp4 --events /out/door.jsonl
#
# The multi-arch image serves x86 with a discrete GPU and Jetson (there: --runtime nvidia --group-add video instead of
# --gpus all). Other machines need another image, for example
#   --build-arg DEEPSTREAM_IMAGE=nvcr.io/nvidia/deepstream:9.1-triton-sbsa-dgx-spark
ARG DEEPSTREAM_VERSION=9.1
ARG DEEPSTREAM_IMAGE=nvcr.io/nvidia/deepstream:${DEEPSTREAM_VERSION}-triton-multiarch
# hadolint ignore=DL3006
FROM ${DEEPSTREAM_IMAGE}

ENV PIP_NO_CACHE_DIR=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    PATH=/opt/gstorch/.venv/bin:$PATH \
    GST_REGISTRY=/tmp/gst-registry.bin \
    HOME=/tmp \
    NVIDIA_DRIVER_CAPABILITIES=compute,utility,video,graphics

WORKDIR /opt/gstorch
COPY . .
# NVIDIA's images come without the CPU codecs; the packages of the set-up bring them. pyservicemaker lies in the image as
# a wheel.
RUN tools/setup.sh runtime \
    && pip install /opt/nvidia/deepstream/deepstream/service-maker/python/pyservicemaker*.whl \
    && rm -rf /var/lib/apt/lists/*

# The registry is made at the start, in /tmp: without a GPU, as during a build, NVIDIA's plugins do not load
RUN python -m compileall -q app elements pipelines tools \
    && useradd --uid 10001 --no-create-home --home-dir /tmp gstorch \
    && install -d -o gstorch /out

USER 10001
WORKDIR /out
VOLUME ["/out"]
HEALTHCHECK --interval=60s --timeout=20s CMD ["gstorch", "version"]
ENTRYPOINT ["gstorch"]
CMD ["doctor"]
