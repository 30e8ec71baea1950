# Builds the relay and puts it alone on a minimal image.
FROM docker.io/library/rust:1-bookworm AS build
WORKDIR /src
COPY Cargo.toml Cargo.lock build.rs ./
COPY .cargo .cargo
COPY proto proto
COPY src src
COPY loadtest loadtest
RUN cargo build --profile dist --features jemalloc --locked --package distributary

# Has the C library and the certificates of public authorities, no shell, and a user who is not root.
FROM gcr.io/distroless/cc-debian12:nonroot
COPY --from=build /src/target/dist/distributary /usr/bin/distributary
# The relay's default is loopback, which nobody outside of the container could reach.
ENV DISTRIBUTARY_LISTEN=0.0.0.0:15010 DISTRIBUTARY_ADMIN=0.0.0.0:9901
EXPOSE 15010 9901
USER nonroot
ENTRYPOINT ["/usr/bin/distributary"]
CMD ["serve"]
