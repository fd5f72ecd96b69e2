/** Randomness as a dependency, so that a run can be repeated exactly from its seed. */

export interface Random {
  /** Uniform in [0, 1). */
  float(): number
  /** A uniform unsigned 32-bit integer. */
  uint32(): number
}

// Filling a pool costs 1/40 of asking the system for each number.
const pool = new Uint32Array(1024)
let used = pool.length

export const systemRandom: Random = {
  float: () => Math.random(),
  uint32() {
    if (used === pool.length) {
      // Loaded with the first use: the thread that renews leases never comes here, and saves a megabyte.
      process.getBuiltinModule('node:crypto').randomFillSync(pool)
      used = 0
    }
    return pool[used++] as number
  },
}

/** xoshiro128** seeded by splitmix32: small, fast, and good enough for tests and jitter; not for secrets. */
export function seededRandom(seed: number): Random {
  let mix = seed >>> 0
  const split = (): number => {
    mix = (mix + 0x9e3779b9) >>> 0
    let z = mix
    z = Math.imul(z ^ (z >>> 16), 0x85ebca6b)
    z = Math.imul(z ^ (z >>> 13), 0xc2b2ae35)
    return (z ^ (z >>> 16)) >>> 0
  }
  let a = split()
  let b = split()
  let c = split()
  let d = split()
  const uint32 = (): number => {
    const x = Math.imul(b, 5)
    const result = Math.imul((x << 7) | (x >>> 25), 9) >>> 0
    const t = b << 9
    c ^= a
    d ^= b
    b ^= c
    a ^= d
    c ^= t
    d = (d << 11) | (d >>> 21)
    return result
  }
  return { uint32, float: () => uint32() / 2 ** 32 }
}
