/** Which file systems can hold the store. SQLite's log needs locks and shared memory, which only one kernel gives. */

/** `refuse`: the name of a file system that would lose data. `warn`: what is wrong with it, after "… is on". */
export type FileSystemVerdict = { readonly refuse: string } | { readonly warn: string } | null

/** Between machines, virtual ones included. By `statfs().type`, as in linux/magic.h and in coreutils' stat.c. */
const SHARED: Readonly<Record<number, string>> = {
  0x6969: 'NFS',
  0x517b: 'SMB',
  0xff534d42: 'SMB',
  0xfe534d42: 'SMB',
  0x01021997: '9p',
  0x00c36400: 'CephFS',
  0x0bd00bd0: 'Lustre',
  0x47504653: 'GPFS',
  0x01161970: 'GFS2',
  0x7461636f: 'OCFS2',
  0x5346414f: 'AFS',
  0x6b414653: 'AFS',
  0x73757245: 'Coda',
  0x19830326: 'BeeGFS',
  0xaad7aaea: 'PanFS',
  0x786f4256: 'vboxsf',
  0xbacbacbc: 'VMware HGFS',
  0x7c7c6673: 'Parallels',
}

const DOUBTFUL: Readonly<Record<number, string>> = {
  0x65735546:
    'a FUSE file system, and loses jobs if that ignores fsync or locks. Use a local disk unless you know that it honours both.',
  0x794c7630: 'overlayfs: the jobs are lost when the container is removed. Put the directory on a volume.',
}

/** Types above 2^31 come back negative on some machines, so they are compared as unsigned 32-bit numbers. */
export function judgeFileSystem(type: number): FileSystemVerdict {
  const unsigned = type >>> 0
  const shared = SHARED[unsigned]
  if (shared !== undefined) return { refuse: shared }
  const doubt = DOUBTFUL[unsigned]
  return doubt === undefined ? null : { warn: doubt }
}
