-- gcra: the generic cell rate algorithm, as a level. Twin: src/core/algorithms/gcra.ts. Contract: lua/lib/level.lua.
algorithms.gcra = { params = 5, step = step_level }
