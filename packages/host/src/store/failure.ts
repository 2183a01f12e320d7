/** The disk or the database failed, not the work that was asked of it: the same work may succeed later. */
export class StoreFailure extends Error {
  override name = 'StoreFailure'
}
