/** What `holdfast/postgres` exports: the store on a server, the embedded one, and the SQL for those who run it themselves. */
export { embeddedStore, type EmbeddedStoreOptions } from './embedded-store.ts'
export { postgresStore, type PostgresStoreOptions } from './postgres-store.ts'
export { postgresSchema } from './postgres-schema.ts'
export type { NamesOptions } from './names.ts'
