# MaskTune Studio in a container; see docs/deploy.md.
#   docker build -t masktune .                                     a CPU is enough for the demos
#   docker build -t masktune --build-arg TORCH_BACKEND=cu130 .     for docker run --gpus all
FROM python:3.11-slim

# uv knows the index of each build of PyTorch by this name: cpu, cu126, cu130, rocm6.4 ...
ARG TORCH_BACKEND=cpu

# Runs, uploads and downloads are kept here: mount a volume to keep them after the container.
ENV MASKTUNE_HOME=/data \
    PYTHONUNBUFFERED=1

WORKDIR /studio
RUN pip install --no-cache-dir uv==0.13.8
COPY requirements.txt ./
RUN uv pip install --system --no-cache --torch-backend "$TORCH_BACKEND" -r requirements.txt

COPY pyproject.toml README.md LICENSE ./
COPY masktune ./masktune
COPY app ./app
COPY assets ./assets
COPY .streamlit ./.streamlit
RUN uv pip install --system --no-cache --no-deps . \
    && useradd --create-home --uid 1000 studio \
    && mkdir /data \
    && chown studio /data

USER 1000
VOLUME /data
EXPOSE 8501
HEALTHCHECK --interval=30s --timeout=5s --start-period=60s \
  CMD ["python", "-c", "import urllib.request as u; u.urlopen('http://127.0.0.1:8501/_stcore/health', timeout=4)"]

# In a container the app listens on every address; publish the port only where it may be seen.
CMD ["streamlit", "run", "app/main.py", "--server.address", "0.0.0.0", "--server.port", "8501"]
