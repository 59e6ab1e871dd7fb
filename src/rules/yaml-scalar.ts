// What a scalar of YAML 1.1 means, as envoyproxy/ratelimit's parser (go-yaml v2) decides: `yes`, `on` and `y` are
// booleans, `010` is octal, `1_000` a thousand, and dates are plain text. The spelling is kept beside the value, since a
// text field takes a plain scalar as it is written.

export type ScalarValue =
  | { readonly kind: "text" }
  | { readonly kind: "null" }
  | { readonly kind: "boolean"; readonly value: boolean }
  | { readonly kind: "integer"; readonly value: bigint }
  | { readonly kind: "float"; readonly value: number };

const TEXT: ScalarValue = { kind: "text" };
const NULL: ScalarValue = { kind: "null" };

const WORDS: ReadonlyMap<string, ScalarValue> = new Map([
  ...words({ kind: "boolean", value: true }, "y Y yes Yes YES true True TRUE on On ON"),
  ...words({ kind: "boolean", value: false }, "n N no No NO false False FALSE off Off OFF"),
  ...words(NULL, "~ null Null NULL"),
  ["", NULL],
  ...words({ kind: "float", value: Number.NaN }, ".nan .NaN .NAN"),
  ...words({ kind: "float", value: Number.POSITIVE_INFINITY }, ".inf .Inf .INF +.inf +.Inf +.INF"),
  ...words({ kind: "float", value: Number.NEGATIVE_INFINITY }, "-.inf -.Inf -.INF"),
]);

function words(value: ScalarValue, list: string): [string, ScalarValue][] {
  return list.split(" ").map((word) => [word, value]);
}

const INTEGER = /^([-+]?)(0x[0-9a-f]+|0b[01]+|0o[0-7]+|0[0-7]+|0|[1-9][0-9]*)$/i;
const FLOAT = /^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)(e[-+]?[0-9]+)?$/i;
/** Longer numbers are text to us; they fit no field anyway, and reading them takes time. */
const MAX_DIGITS = 400;

/** The value of a scalar that is neither quoted nor tagged. */
export function plainScalar(text: string): ScalarValue {
  const word = WORDS.get(text);
  if (word !== undefined) return word;
  if (!/^[-+.0-9]/.test(text) || text.length > MAX_DIGITS) return TEXT;
  // After a leading dot an underscore must stand between two digits, elsewhere it may stand anywhere.
  const digits = text.startsWith(".") ? text.replace(/(?<=\d)_(?=\d)/g, "") : text.replaceAll("_", "");
  const [, sign = "", number = ""] = INTEGER.exec(digits) ?? [];
  if (number !== "") {
    const octal = /^0[0-7]+$/.test(number);
    const size = BigInt(octal ? `0o${number}` : number);
    return { kind: "integer", value: sign === "-" ? -size : size };
  }
  const value = FLOAT.test(digits) ? Number(digits) : Number.NaN;
  return Number.isFinite(value) ? { kind: "float", value } : TEXT;
}

const TAG_PREFIX = "tag:yaml.org,2002:";
const KIND_OF_TAG: Readonly<Record<string, ScalarValue["kind"]>> = {
  str: "text",
  bool: "boolean",
  null: "null",
  int: "integer",
  float: "float",
};

/** The value of a scalar with an explicit tag such as `!!int`. Tags of one's own mean text. */
export function taggedScalar(text: string, tag: string): ScalarValue | { readonly problem: string } {
  if (!tag.startsWith(TAG_PREFIX)) return TEXT;
  const name = tag.slice(TAG_PREFIX.length);
  const kind = KIND_OF_TAG[name];
  if (name === "timestamp") return TEXT;
  if (kind === undefined) return { problem: `the tag !!${name} means nothing here: remove it` };
  if (kind === "text") return TEXT;
  const value = plainScalar(text);
  if (kind === "float" && value.kind === "integer") return { kind: "float", value: Number(value.value) };
  return value.kind === kind ? value : { problem: `this is no !!${name}: change the text or remove the tag` };
}
