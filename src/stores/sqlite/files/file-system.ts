/** Which file systems can hold the store. SQLite's log needs locks and shared memory, which only one kernel gives. */

/** `refuse`: the name of a file system that would lose data. `warn`: what is wrong with it, after "… is on". */
export type FileSystemVerdict = { readonly refuse: string } | { readonly warn: string } | null

/** By `statfs().type`; https://man7.org/linux/man-pages/man2/statfs.2.html lists them. */
const NETWORK: Readonly<Record<number, string>> = {
  0x6969: 'NFS',
  0xff534d42: 'SMB',
  0xfe534d42: 'SMB',
  0x01021997: '9p',
}

const DOUBTFUL: Readonly<Record<number, string>> = {
  0x65735546:
    'a FUSE file system, and loses jobs if that ignores fsync or locks. Use a local disk unless you know that it honours both.',
  0x794c7630: 'overlayfs: the jobs are lost when the container is removed. Put the directory on a volume.',
}

/** Types above 2^31 come back negative on some machines, so they are compared as unsigned 32-bit numbers. */
export function judgeFileSystem(type: number): FileSystemVerdict {
  const unsigned = type >>> 0
  const network = NETWORK[unsigned]
  if (network !== undefined) return { refuse: network }
  const doubt = DOUBTFUL[unsigned]
  return doubt === undefined ? null : { warn: doubt }
}
