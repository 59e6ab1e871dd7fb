import { describe, expect, it } from "vitest";
import { toBytes, toText } from "../../src/core/text.ts";
import { fc, test } from "../support/property.ts";

describe("byte strings", () => {
  test("any well-formed text survives the way there and back", [fc.string({ unit: "binary" })], (text) => {
    const wellFormed = text.toWellFormed();
    expect(toBytes(text)).toBe(Buffer.from(wellFormed, "utf8").toString("latin1"));
    expect(toText(toBytes(text))).toBe(wellFormed);
  });

  test("any bytes become valid UTF-8 text, and UTF-8 is shown as it is", [fc.uint8Array()], (bytes) => {
    const text = toText(Buffer.from(bytes).toString("latin1"));
    expect(text.isWellFormed()).toBe(true);
    expect(Buffer.from(text, "utf8").toString("utf8")).toBe(text);
  });

  it("shows bytes that are not UTF-8 as hexadecimal", () => {
    expect(toText("a\xff\xc3(")).toBe("a\\xff\\xc3(");
    expect(toText("\xc0\xaf \xed\xa0\x80 \xf4\x90\x80\x80 \xe2\x82")).toBe(
      "\\xc0\\xaf \\xed\\xa0\\x80 \\xf4\\x90\\x80\\x80 \\xe2\\x82",
    );
  });
});
