// What can keep weir from deciding. Being over a limit is never an error.

/** The request cannot be answered as it stands; the caller must change it. */
export class RequestError extends Error {
  override readonly name = "RequestError";
}

/** The request is larger than weir takes; the caller must send less at a time. */
export class TooLargeError extends Error {
  override readonly name = "TooLargeError";
}

/** weir is not able to decide yet: no rules were ever loaded. */
export class NotReadyError extends Error {
  override readonly name = "NotReadyError";
}

/** The store failed, so nothing is known about the counters; `transient` says whether another try may help. */
export class StoreError extends Error {
  override readonly name = "StoreError";
  readonly transient: boolean;

  constructor(message: string, options: { transient: boolean; cause?: unknown }) {
    super(message, { cause: options.cause });
    this.transient = options.transient;
  }
}
