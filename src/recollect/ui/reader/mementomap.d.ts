/** The types of mementomap.js: a reader of MementoMaps for browsers, extensions and Node. */
export type Answer = "yes" | "no" | "unknown";

export interface Lookup {
  uri: string;
  answer: Answer;
  /** The deciding key, one character for each of its bytes; null if no key covers the URI. */
  key: string | null;
  frequency: string | null;
  /** Why the answer is unknown; empty otherwise. */
  reason: string;
}

export interface OpenOptions extends RequestInit {
  /** Positions and first keys of blocks, from the `marks` of a published index.json. */
  marks?: [number, string][];
}

export class BadURI extends Error {}

export class MementoMap {
  static open(source: string | URL | Uint8Array, options?: OpenOptions): Promise<MementoMap>;
  /** The entries of `!meta`. */
  readonly meta: Record<string, unknown>;
  /** The archive that `!id` names. */
  readonly id: string | null;
  readonly traffic: { requests: number; bytes: number };
  lookup(uri: string): Promise<Lookup>;
}

export function keyOf(uri: string): string;
export function uriKey(surt: string): string;
export function isSURT(text: string): boolean;
export function spellings(text: string): string[];
