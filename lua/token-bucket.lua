-- token-bucket: continuous refill, as a level. Twin: src/core/algorithms/token-bucket.ts. Contract: lua/lib/level.lua.
algorithms.token_bucket = { params = 5, step = step_level }
