// The package has no types of its own.
declare module "cluster-key-slot" {
  /** The slot of a key, 0 to 16383. */
  function keySlot(key: string): number;
  export = keySlot;
}
