import { describe, expect, it } from "vitest";
import { counterKey } from "../../src/core/counter-key.ts";

describe("the entry that is the hash tag", () => {
  it("has the value of share_threshold too, or sharing would end at the tag", () => {
    const plan = { head: "weir1:fixed_window:1:{d", tagEntries: 1, sharedValues: ["docs/*"], hashTag: "file" };
    const keyOf = (value: string) => counterKey(plan, [{ key: "file", value }], () => "");
    expect(keyOf("docs/a")).toBe("weir1:fixed_window:1:{d|file=docs/*}||file=docs/*");
    expect(keyOf("docs/b")).toBe(keyOf("docs/a"));
  });
});
