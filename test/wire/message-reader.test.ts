import { describe, expect, it } from "vitest";
import { GrpcError } from "../../src/wire/door.ts";
import { frameMessage } from "../../src/wire/frame-message.ts";
import { type ByteBudget, MessageReader } from "../../src/wire/message-reader.ts";
import { fc, test } from "../support/property.ts";

const MAX_BYTES = 5000;

function newBudget(maxBytes = 1_000_000): ByteBudget {
  return { maxBytes, usedBytes: 0 };
}

/** Feeds the chunks: the message, or the code and text of what is wrong. */
function read(chunks: readonly Uint8Array[], budget = newBudget()): Buffer | string {
  const reader = new MessageReader(MAX_BYTES, budget);
  for (const chunk of chunks) {
    const problem = reader.push(chunk);
    if (problem !== undefined) return textOf(problem);
  }
  const message = reader.end();
  const answer = message instanceof GrpcError ? textOf(message) : Buffer.from(message);
  reader.release();
  expect(budget.usedBytes).toBe(0);
  return answer;
}

function textOf(error: GrpcError): string {
  return `${error.code} ${error.message}`;
}

/** The bytes in pieces that end at these places. */
function splitAt(bytes: Uint8Array, places: readonly number[]): Uint8Array[] {
  const ends = [...new Set(places.map((place) => place % (bytes.length + 1)))].sort((a, b) => a - b);
  return [...ends, bytes.length].map((end, index) => bytes.subarray(ends[index - 1] ?? 0, end));
}

describe("MessageReader", () => {
  const messages = fc.uint8Array({ maxLength: MAX_BYTES, size: "max" });
  const places = fc.array(fc.nat(), { maxLength: 20 });

  test("reads a message however it is split", [messages, places], (message, ends) => {
    expect(read(splitAt(frameMessage(message), ends))).toEqual(Buffer.from(message));
  });

  test("finds a second message however it is split", [messages, messages, places], (message, second, ends) => {
    const both = Buffer.concat([frameMessage(message), frameMessage(second)]);
    expect(read(splitAt(both, ends))).toBe("13 the call has more than one message");
  });

  test("notices a message that is cut short, wherever", [messages, fc.nat(), places], (message, end, ends) => {
    const framed = frameMessage(message);
    const cut = framed.subarray(0, end % framed.length);
    const why = cut.length === 0 ? "13 the call has no message" : "13 the call ends within its message";
    expect(read(splitAt(cut, ends))).toBe(why);
  });

  it("refuses a message by its prefix alone", () => {
    expect(read([Buffer.of(0, 0, 0, 0x13, 0x88)])).toBe("13 the call ends within its message");
    expect(read([Buffer.of(0, 0, 0, 0x13, 0x89)])).toBe("8 the message is larger than 5000 bytes");
    expect(read([Buffer.of(0, 0xff, 0xff, 0xff), Buffer.of(0xff)])).toBe("8 the message is larger than 5000 bytes");
    expect(read([Buffer.of(1)])).toBe("12 compressed messages are not supported");
    expect(read([Buffer.of(255)])).toBe("13 unknown message flag 255");
  });

  it("does not copy a message that comes in one piece, with its prefix or after it", () => {
    const framed = frameMessage(Buffer.from("whole"));
    for (const chunks of [[framed], [framed.subarray(0, 5), framed.subarray(5)]]) {
      const reader = new MessageReader(MAX_BYTES, newBudget(0));
      for (const chunk of chunks) expect(reader.push(chunk)).toBe(undefined);
      const message = reader.end();
      if (message instanceof GrpcError) throw message;
      expect(message.buffer).toBe(framed.buffer);
    }
  });

  it("takes memory for what has come, not for what was announced, and gives it back", () => {
    const budget = newBudget();
    const reader = new MessageReader(1_000_000, budget);
    reader.push(frameMessage(Buffer.alloc(1_000_000)).subarray(0, 6));
    expect(budget.usedBytes).toBe(1024);
    reader.push(Buffer.alloc(2000));
    expect(budget.usedBytes).toBe(2048);
    reader.push(Buffer.alloc(997_999));
    expect(budget.usedBytes).toBe(1_000_000);
    reader.release();
    reader.release();
    expect(budget.usedBytes).toBe(0);
  });

  it("refuses what the budget has no room for", () => {
    const chunks = [frameMessage(Buffer.alloc(3000)).subarray(0, 2000), Buffer.alloc(1005)];
    expect(read(chunks, newBudget(3000))).toEqual(Buffer.alloc(3000));
    expect(read(chunks, newBudget(2999))).toBe("8 too many unfinished messages");
  });
});
