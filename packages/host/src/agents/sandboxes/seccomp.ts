/**
 * The system calls that bubblewrap's payload does not get: those that make a new user namespace (in which it would be
 * root again and could reach more of the kernel), and a few large interfaces that no agent needs. Container engines
 * bring a list of their own.
 */
interface Machine {
  audit: number
  /** refused as if the kernel did not know them: libraries then use older calls */
  unknown: readonly number[]
  forbidden: readonly number[]
  namespaces: readonly number[]
  largestCall: number
}

const machines: Partial<Record<NodeJS.Architecture, Machine>> = {
  x64: {
    audit: 0xc000003e,
    unknown: [435, 425, 426, 427], // clone3 (its flags are out of a filter's sight), io_uring
    forbidden: [308, 248, 249, 250, 321, 323, 298], // setns, add_key, request_key, keyctl, bpf, userfaultfd, perf_event_open
    namespaces: [56, 272], // clone, unshare
    largestCall: 0x3fffffff, // above: x32, the same calls under other numbers
  },
  arm64: {
    audit: 0xc00000b7,
    unknown: [435, 425, 426, 427],
    forbidden: [268, 217, 218, 219, 280, 282, 241],
    namespaces: [220, 97],
    largestCall: 0x7fffffff,
  },
}

const load = 0x20 // A = word at offset k
const jumpEqual = 0x15
const jumpGreater = 0x25
const jumpBits = 0x45 // A & k
const answer = 0x06

const allow = 0x7fff0000
const refuse = (errno: number) => 0x00050000 | errno
const EPERM = 1
const ENOSYS = 38
const newUserNamespace = 0x10000000

const offsetOfCall = 0
const offsetOfMachine = 4
const offsetOfFirstArgument = 16

type Instruction = readonly [code: number, ifTrue: number, ifFalse: number, value: number]

/** The program as the kernel reads it; undefined on a machine whose numbers we do not have. */
export function seccompProgram(architecture: NodeJS.Architecture = process.arch): Buffer | undefined {
  const machine = machines[architecture]
  if (!machine) return undefined
  const program: Instruction[] = [
    [load, 0, 0, offsetOfMachine],
    [jumpEqual, 1, 0, machine.audit],
    [answer, 0, 0, refuse(ENOSYS)],
    [load, 0, 0, offsetOfCall],
    [jumpGreater, 0, 1, machine.largestCall],
    [answer, 0, 0, refuse(ENOSYS)],
  ]
  for (const call of machine.unknown) program.push([jumpEqual, 0, 1, call], [answer, 0, 0, refuse(ENOSYS)])
  for (const call of machine.forbidden) program.push([jumpEqual, 0, 1, call], [answer, 0, 0, refuse(EPERM)])
  for (const call of machine.namespaces)
    program.push(
      [jumpEqual, 0, 4, call],
      [load, 0, 0, offsetOfFirstArgument],
      [jumpBits, 0, 1, newUserNamespace],
      [answer, 0, 0, refuse(EPERM)],
      [answer, 0, 0, allow],
    )
  program.push([answer, 0, 0, allow])

  const bytes = Buffer.alloc(program.length * 8)
  for (const [index, [code, ifTrue, ifFalse, value]] of program.entries()) {
    bytes.writeUInt16LE(code, index * 8)
    bytes.writeUInt8(ifTrue, index * 8 + 2)
    bytes.writeUInt8(ifFalse, index * 8 + 3)
    bytes.writeUInt32LE(value, index * 8 + 4)
  }
  return bytes
}
