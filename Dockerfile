# The weir image: production packages only, run by an unprivileged user, no shell needed to start or to probe it.
# Rules are read from /srv/runtime_data/current/config unless the RUNTIME_ settings say otherwise; mount yours there.

FROM node:24-slim AS build
WORKDIR /build
COPY package.json package-lock.json ./
# With install scripts: the `node` package brings the Node that npm scripts run.
RUN npm ci --no-audit --no-fund
COPY tsconfig.json tsconfig.build.json ./
COPY tools/build.sh tools/build.sh
COPY src src
RUN npm run build && npm prune --omit=dev --no-audit --no-fund

FROM node:24-slim
ENV NODE_ENV=production \
    RUNTIME_ROOT=/srv/runtime_data/current \
    PORT=8080 \
    GRPC_PORT=8081 \
    DEBUG_PORT=6070
WORKDIR /weir
COPY --from=build /build/package.json ./
COPY --from=build /build/node_modules node_modules
COPY --from=build /build/dist dist
COPY lua lua
COPY config/rules /srv/runtime_data/current/config
USER node
EXPOSE 8080 8081 6070
HEALTHCHECK --interval=5s --timeout=2s --start-period=5s --retries=2 \
  CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.PORT}/healthcheck`).then((r) => process.exit(r.ok ? 0 : 1), () => process.exit(1))"]
# Exec form: signals reach weir itself. It drains for WEIR_DRAIN (5 s) after SIGTERM; docker waits 10 s before it kills.
CMD ["node", "dist/cli/main.js", "serve"]
