/** The library, whose types are there even where it is not installed. */
export type Baileys = typeof import('baileys')
export type Socket = ReturnType<Baileys['makeWASocket']>
export type {
  AnyMessageContent,
  AuthenticationCreds,
  AuthenticationState,
  BinaryNode,
  GroupMetadata,
  proto,
  SignalDataSet,
  SignalDataTypeMap,
  SignalKeyStoreWithTransaction,
  SocketConfig,
} from 'baileys'
