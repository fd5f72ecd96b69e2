/** `holdfast/sqlite`: the embedded store and its options. */
export { sqliteStore, type SqliteStoreOptions } from './sqlite-store.ts'
