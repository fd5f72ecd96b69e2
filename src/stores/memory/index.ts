/** `holdfast/memory`: the in-memory store. */
export { memoryStore, type MemoryStoreOptions } from './memory-store.ts'
