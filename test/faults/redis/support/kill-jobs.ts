/** What the workers of the kill soak on Redis run. */
import { Redis } from 'ioredis'
import { killWork } from '../../support/kill-work.ts'

// It waits for the server to come back; a repeat of what was done already changes nothing.
const redis = new Redis(process.env['HOLDFAST_STORE'] ?? '')
redis.on('error', () => undefined)

const NOTE = `
  if tonumber(redis.call('HGET', KEYS[1], ARGV[1]) or '0') >= tonumber(ARGV[2]) then return 0 end
  redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
  return redis.call('HINCRBY', KEYS[2], ARGV[1], 1)`

export const work = killWork((job, fence) => redis.eval(NOTE, 2, 'effect:fence', 'effect:times', job, fence))
// The connection is no reason for the process to go on.
redis.on('ready', () => (redis.stream as { unref?(): void }).unref?.())
