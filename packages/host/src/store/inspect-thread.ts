import { answerQuestions } from '../base/thread-side.ts'
import { copyWhole, handledAfter, inspectStore, settleCopy, signOut } from './inspect.ts'
import type { LookTask } from './inspect-aside.ts'

/** Long work on copies of databases, which keeps nobody waiting here. */
answerQuestions(async (task: LookTask): Promise<unknown> => {
  switch (task.kind) {
    case 'look':
      return inspectStore(task.path)
    case 'settle':
      settleCopy(task.path)
      if (!task.keepsSessions) signOut(task.path)
      return handledAfter(task.path, task.seq)
    case 'copy':
      return copyWhole(task.directory, task.names, task.to)
  }
})
