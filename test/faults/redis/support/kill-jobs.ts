/** The jobs of the kill soak on Redis. */
import { Redis } from 'ioredis'
import { killWork } from '../../support/kill-work.ts'

// ioredis waits for the server to come back. Repeating a command that was executed changes nothing.
const redis = new Redis(process.env['HOLDFAST_STORE'] ?? '')
redis.on('error', () => undefined)

const NOTE = `
  if tonumber(redis.call('HGET', KEYS[1], ARGV[1]) or '0') >= tonumber(ARGV[2]) then return 0 end
  redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
  return redis.call('HINCRBY', KEYS[2], ARGV[1], 1)`

export const work = killWork((job, fence) => redis.eval(NOTE, 2, 'effect:fence', 'effect:times', job, fence))
// The connection must not keep the process alive.
redis.on('ready', () => (redis.stream as { unref?(): void }).unref?.())
