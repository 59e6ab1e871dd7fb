// From what a handler threw to what the caller is told.
import { GrpcCode, GrpcError } from "./door.ts";

/** A GrpcError as it is; anything else is our bug, is reported and becomes INTERNAL without its details. */
export function toGrpcError(thrown: unknown, path: string, onBug: (error: unknown, path: string) => void): GrpcError {
  if (thrown instanceof GrpcError) return thrown;
  onBug(thrown, path);
  return new GrpcError(GrpcCode.INTERNAL, "internal error");
}
