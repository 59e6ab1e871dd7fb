// The `grpc-timeout` header: at most eight digits and a unit (gRPC over HTTP/2, "Timeout").

const MS_PER_UNIT: Readonly<Record<string, number>> = {
  H: 3_600_000,
  M: 60_000,
  S: 1000,
  m: 1,
  u: 1e-3,
  n: 1e-6,
};

const FORM = /^[0-9]{1,8}[HMSmun]$/;

/** The timeout in milliseconds, fractions included; `undefined` when the value is malformed (a negative one is). */
export function parseTimeout(value: string): number | undefined {
  if (!FORM.test(value)) return undefined;
  const msPerUnit = MS_PER_UNIT[value.slice(-1)];
  return msPerUnit === undefined ? undefined : Number(value.slice(0, -1)) * msPerUnit;
}
