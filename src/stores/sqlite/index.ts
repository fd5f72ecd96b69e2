/** `holdfast/sqlite`: the embedded store and its options. */
export { sqliteStore, type SqliteStoreOptions } from './sqlite-store.ts'
export type { SqliteDatabase } from './caller/handle.ts'
