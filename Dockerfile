# Builds both programs, and puts each alone on an image without a shell: the relay, and with `--target load` the load tool.
# With `--platform linux/arm64` or `linux/amd64` it builds for that machine, by cross-compilers of Debian where this is another one.
FROM --platform=$BUILDPLATFORM docker.io/library/rust:1.95.0-bookworm AS build
WORKDIR /src
ENV CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc
ENV CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_LINKER=x86_64-linux-gnu-gcc
ARG TARGETARCH
RUN own=$(dpkg --print-architecture) arch=${TARGETARCH:-$(dpkg --print-architecture)} \
    && case "$arch" in \
        amd64) cpu=x86_64 ;; \
        arm64) cpu=aarch64 ;; \
        *) echo "linux/$arch: not tried; build for linux/amd64 or linux/arm64" >&2; exit 1 ;; \
    esac \
    && echo "$cpu-unknown-linux-gnu" >/triple \
    && if [ "$arch" != "$own" ]; then \
        rustup target add "$(cat /triple)" \
        && dpkg --add-architecture "$arch" \
        && apt-get update \
        && apt-get install --yes --no-install-recommends \
            "gcc-$(echo "$cpu" | tr _ -)-linux-gnu" "libc6-dev-$arch-cross" "libc6:$arch" "libgcc-s1:$arch" \
        && rm -rf /var/lib/apt/lists; \
    fi
# What the programs depend on is a layer of its own, made from the manifests alone: an edit of the sources does not build it again.
COPY Cargo.toml Cargo.lock ./
COPY .cargo .cargo
COPY loadtest/Cargo.toml loadtest/Cargo.toml
COPY proto/Cargo.toml proto/Cargo.toml
COPY src/cache/Cargo.toml src/cache/Cargo.toml
COPY src/classes/Cargo.toml src/classes/Cargo.toml
COPY src/identity/Cargo.toml src/identity/Cargo.toml
COPY src/inquiry/Cargo.toml src/inquiry/Cargo.toml
COPY src/json/Cargo.toml src/json/Cargo.toml
COPY src/protocol/Cargo.toml src/protocol/Cargo.toml
COPY src/xds/Cargo.toml src/xds/Cargo.toml
COPY tests/peers/Cargo.toml tests/peers/Cargo.toml
COPY tests/simulation/Cargo.toml tests/simulation/Cargo.toml
RUN mkdir -p loadtest/src loadtest/benches \
    && touch src/lib.rs proto/lib.rs tests/peers/lib.rs \
    && for room in src/*/; do touch "$room/mod.rs"; done \
    && echo 'fn main() {}' | tee build.rs proto/build.rs src/main.rs loadtest/src/main.rs loadtest/benches/machines.rs \
    && cargo build --workspace --profile dist --features jemalloc --locked --target "$(cat /triple)" \
    && cargo clean --profile dist --workspace --target "$(cat /triple)"
COPY build.rs LICENSE ./
COPY proto proto
COPY src src
COPY loadtest loadtest
COPY tests/peers tests/peers
COPY config/image config/image
# The commit that the image is built from: there is no repository here.
ARG COMMIT=
RUN DISTRIBUTARY_COMMIT=$COMMIT cargo build --workspace --profile dist --features jemalloc --locked --target "$(cat /triple)"
RUN config/image/root "target/$(cat /triple)/dist/distributary" /relay \
    && config/image/root "target/$(cat /triple)/dist/distributary-load" /load \
    && mkdir -m 700 /state

FROM scratch AS load
ARG COMMIT=
LABEL org.opencontainers.image.title="distributary-load" \
    org.opencontainers.image.description="A load test for xDS servers" \
    org.opencontainers.image.version="0.1.0" \
    org.opencontainers.image.revision="$COMMIT" \
    org.opencontainers.image.licenses="Apache-2.0"
COPY --from=build /load /
USER 65532:65532
ENTRYPOINT ["/usr/bin/distributary-load"]

FROM scratch AS relay
ARG COMMIT=
LABEL org.opencontainers.image.title="distributary" \
    org.opencontainers.image.description="An xDS relay: many Envoys and gRPC clients, few streams to the control plane" \
    org.opencontainers.image.version="0.1.0" \
    org.opencontainers.image.revision="$COMMIT" \
    org.opencontainers.image.licenses="Apache-2.0"
COPY --from=build /relay /
# For snapshots: a volume that is mounted here belongs to the user below.
COPY --from=build --chown=65532:65532 /state /var/lib/distributary
COPY config/image/relay.yaml /etc/distributary/relay.yaml
ENV DISTRIBUTARY_CONFIG=/etc/distributary/relay.yaml
EXPOSE 15010 9902
# Whether it runs, not whether it is ready: an engine that restarts what is unhealthy must not do so because a control plane is away.
HEALTHCHECK --interval=10s --timeout=3s --start-period=30s CMD ["/usr/bin/distributary", "health", "--live"]
USER 65532:65532
ENTRYPOINT ["/usr/bin/distributary"]
CMD ["serve"]
