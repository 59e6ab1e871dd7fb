// The grammar as JSON Schema (draft 7, the one that editors know best), for completion and checks while a rule file is
// written. It is stricter than the parser in two ways: a word in the wrong place, which only warns, is an error here,
// and editors do not know the booleans and numbers of YAML 1.1.
import { type Field, SHAPES, type TextField } from "./schema.ts";

type Schema = { readonly [word: string]: unknown };

export function rulesSchema(): Schema {
  const definitions: Record<string, Schema> = {};
  for (const [name, shape] of Object.entries(SHAPES)) {
    if (name !== "file") definitions[name] = mapSchema(shape);
  }
  return {
    $schema: "http://json-schema.org/draft-07/schema#",
    title: "weir rule file",
    description: "The rate limits of one domain.",
    ...mapSchema(SHAPES.file),
    definitions,
  };
}

function mapSchema(shape: Readonly<Record<string, Field>>): Schema {
  const properties: Record<string, Schema> = {};
  const required: string[] = [];
  for (const [word, field] of Object.entries(shape)) {
    properties[word] = { description: field.help, ...fieldSchema(field) };
    if (field.kind === "text" && field.required === true) required.push(word);
  }
  return {
    type: "object",
    properties,
    ...(required.length === 0 ? {} : { required }),
    additionalProperties: false,
  };
}

/** What is not required may be null, which is as good as absent. */
function fieldSchema(field: Field): Schema {
  switch (field.kind) {
    case "text":
      return textSchema(field);
    case "flag":
      return { type: ["boolean", "null"] };
    case "integer":
      return { type: ["integer", "null"], minimum: field.min, maximum: field.max };
    case "choice":
      return { enum: [...field.choices, null] };
    case "free":
      return { type: ["object", "null"] };
    case "map":
      return { anyOf: [{ $ref: `#/definitions/${field.shape}` }, { type: "null" }] };
    case "list":
      return { type: ["array", "null"], items: { $ref: `#/definitions/${field.shape}` } };
  }
}

/** Plain numbers and booleans are text where text is asked for. */
function textSchema({ required, words, pattern }: TextField): Schema {
  if (words !== undefined) return { anyOf: [{ enum: words }, { type: ["string", "null"], pattern: anyCase(words) }] };
  if (pattern !== undefined) return { type: ["string", "null"], pattern };
  if (required === true) return { type: ["string", "integer", "boolean"], minLength: 1 };
  return { type: ["string", "integer", "boolean", "null"] };
}

/** JSON Schema has no flag for it. */
function anyCase(words: readonly string[]): string {
  const letters = (word: string) => [...word].map((letter) => `[${letter}${letter.toUpperCase()}]`).join("");
  return `^(${words.map(letters).join("|")})$`;
}
