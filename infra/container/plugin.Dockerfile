# plugin, and what plugins are started with: Node.js with npx, Python, uv with uvx. From the repository's root:
#   docker buildx build --platform linux/arm64 -f infra/container/plugin.Dockerfile \
#     --build-arg GO_DIGEST="$(cat infra/container/golang.digest)" \
#     --build-arg NODE_DIGEST="$(cat infra/container/node.digest)" .
# infra/deploy.sh does it. The bases are the tags below, whose content the digests fix: building fails without them.
# That of Node.js has Debian's Python, too.
#
# A file of its own, so that media and worker are built without a digest of Node.js. As with theirs, nothing of the
# image runs while it is built, and no emulator is needed.
ARG GO_DIGEST
ARG NODE_DIGEST
FROM --platform=$BUILDPLATFORM golang:1.26-bookworm@${GO_DIGEST} AS build
RUN apt-get update -q && apt-get install -y -q --no-install-recommends python3-pip && rm -rf /var/lib/apt/lists/*
ARG TARGETARCH
# Two static programs. They come in a package for the processor that is asked for, of which nothing is run.
RUN cpu=$([ "$TARGETARCH" = arm64 ] && echo aarch64 || echo x86_64) && \
    python3 -m pip install --disable-pip-version-check --no-cache-dir --no-deps --only-binary :all: --platform "manylinux2014_$cpu" \
      --target /uv uv==0.13.9 && \
    mkdir -p /image/usr/local/share/doc/uv && mv /uv/bin /image/usr/local/bin && mv /uv/*.dist-info/licenses/* /image/usr/local/share/doc/uv/
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY functions/plugin functions/plugin
COPY shared shared
RUN CGO_ENABLED=0 GOARCH=$TARGETARCH go build -trimpath -ldflags="-s -w" -tags=lambda.norpc -o /image/bootstrap ./functions/plugin

FROM node:24-bookworm@${NODE_DIGEST}
COPY --from=build /image /
USER 65532:65532
ENV LISTEN_ADDR=0.0.0.0:8086
EXPOSE 8086
ENTRYPOINT ["/bootstrap"]
