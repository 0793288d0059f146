# The server with its embedding model inside: once built it needs no network. Two images:
#   docker build --tag memoryos-mcp-server .                           HTTP, for a team
#   docker build --tag memoryos-mcp-server:stdio --target stdio .      stdin and stdout, for a client that starts it
FROM python:3.13-slim AS build
# Extras of the package, with commas between them.
ARG EXTRAS=otel,postgres
WORKDIR /src
COPY pyproject.toml README.md LICENSE ./
COPY memoryos_mcp memoryos_mcp
RUN python -m venv /opt/memoryos \
    && /opt/memoryos/bin/pip install --no-cache-dir --disable-pip-version-check --only-binary :all: ".[$EXTRAS]"

FROM python:3.13-slim AS base
LABEL org.opencontainers.image.title="memoryos-mcp-server" \
      org.opencontainers.image.description="A long-term memory for AI assistants over MCP" \
      org.opencontainers.image.version="0.1.0" \
      org.opencontainers.image.licenses="Apache-2.0" \
      io.modelcontextprotocol.server.name="com.example/memoryos-mcp-server"
RUN groupadd --system --gid 10001 memoryos \
    && useradd --system --uid 10001 --gid 10001 --no-create-home --home-dir /data memoryos \
    && install -d -m 700 -o memoryos -g memoryos /data
COPY --from=build /opt/memoryos /opt/memoryos
ENV PATH=/opt/memoryos/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    MEMORYOS_DATA_STORAGE_PATH=/data
USER 10001:10001
WORKDIR /data
VOLUME /data
ENTRYPOINT ["memoryos-mcp"]

FROM base AS stdio
CMD ["serve"]

# The last one is built when no target is named.
FROM base AS http
EXPOSE 8000
HEALTHCHECK --interval=30s --timeout=5s --start-period=15s --retries=3 \
    CMD ["python", "-c", "from http.client import HTTPConnection; c = HTTPConnection('127.0.0.1', 8000, timeout=4); c.request('GET', '/health/live'); raise SystemExit(c.getresponse().status != 200)"]
CMD ["serve", "--transport", "all", "--host", "0.0.0.0", "--port", "8000"]
