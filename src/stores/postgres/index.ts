/** What `holdfast/postgres` exports: the store, and the SQL for those who run it themselves. */
export { postgresStore, type PostgresStoreOptions } from './postgres-store.ts'
export { postgresSchema } from './postgres-schema.ts'
export type { NamesOptions } from './names.ts'
