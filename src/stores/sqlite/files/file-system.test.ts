import { describe, expect, test } from 'vitest'
import { judgeFileSystem } from './file-system.ts'

const hex = (type: number): string => `0x${type.toString(16)}`

describe('the judgement on a file system', () => {
  test.each([
    ['NFS', 0x6969],
    ['SMB', 0xff534d42],
    ['SMB', 0xfe534d42],
    ['SMB', 0x517b],
    ['9p', 0x01021997],
    ['CephFS', 0x00c36400],
    ['Lustre', 0x0bd00bd0],
    ['GPFS', 0x47504653],
    ['GFS2', 0x01161970],
    ['OCFS2', 0x7461636f],
    ['AFS', 0x5346414f],
    ['AFS', 0x6b414653],
    ['vboxsf', 0x786f4256],
  ])('refuses %s', (name, type) => {
    expect(judgeFileSystem(type), hex(type)).toEqual({ refuse: name })
  })

  test.each([0xff534d42, 0xfe534d42])('refuses %i as a signed number, too', (type) => {
    expect(judgeFileSystem(type | 0)).toEqual({ refuse: 'SMB' })
  })

  test('warns of FUSE, and of overlayfs, whose data goes with the container', () => {
    expect(judgeFileSystem(0x65735546)).toEqual({ warn: expect.stringContaining('FUSE') })
    expect(judgeFileSystem(0x794c7630)).toEqual({ warn: expect.stringContaining('volume') })
  })

  test.each([
    ['ext4', 0xef53],
    ['XFS', 0x58465342],
    ['Btrfs', 0x9123683e],
    ['Btrfs, signed', 0x9123683e | 0],
    ['ZFS', 0x2fc12fc1],
    ['tmpfs', 0x01021994],
    ['APFS on macOS', 0x1a],
    ['anything on Windows', 0],
  ])('has nothing against %s', (_name, type) => {
    expect(judgeFileSystem(type)).toBeNull()
  })
})
