import { describe, expect, it } from "vitest";
import { encodeGrpcMessage, MAX_MESSAGE_CHARACTERS } from "../../src/wire/grpc-message.ts";
import { fc, test } from "../support/property.ts";

describe("encodeGrpcMessage", () => {
  test("is undone by percent-decoding, and is a plain header value", [fc.string({ unit: "binary" })], (text) => {
    const encoded = encodeGrpcMessage(text);
    expect(decodeURIComponent(encoded)).toBe(text.toWellFormed());
    expect(encoded).toMatch(/^(?! )[\x20-\x7e]*(?<! )$/);
  });

  it.each([
    ["plain text, with {signs}!", "plain text, with {signs}!"],
    ["100 %", "100 %25"],
    ["tab\tline\r\n", "tab%09line%0D%0A"],
    ["é\ud800", "%C3%A9%EF%BF%BD"],
    [" inner space ", "%20inner space%20"],
    [" ", "%20"],
    ["", ""],
  ])("writes %j as %s", (text, encoded) => {
    expect(encodeGrpcMessage(text)).toBe(encoded);
  });

  it("cuts what is too long", () => {
    expect(encodeGrpcMessage("a".repeat(MAX_MESSAGE_CHARACTERS + 1))).toBe("a".repeat(MAX_MESSAGE_CHARACTERS));
  });
});
