/** Where the statements are. In this folder, because the build puts the module into a file of this folder: see `scripts/build.ts`. */
export const SQL_FOLDER = new URL('sql/', import.meta.url)
