import { count } from '../format.ts'
import { type Course, duration, seriesOf } from '../growth.ts'
import { type FileFigures, growFiles } from '../growth-files.ts'
import { type GroupFigures, growGroups } from '../growth-groups.ts'
import { bareWatch, chokidarMethod, nativeMethod, secondPoller } from '../peers/files.ts'
import { loopName } from '../peers/loop.ts'
import { draw } from '../plot.ts'
import type { Picture, Row, RowResult, Setting } from '../row.ts'

const names = [
  'Hatchway',
  bareWatch.name,
  chokidarMethod.name,
  nativeMethod.name,
  secondPoller.name,
  loopName,
]

/** Marked with a cross in the picture. */
const endings = (courses: readonly Course<unknown>[]) =>
  courses.flatMap(({ name, ended }) => (ended === undefined ? [] : [`✕ ${name} ${ended}.`]))

const megabytes = (value: number) => `${count(value)} MB`

const groupsPicture = (courses: readonly Course<GroupFigures>[]): Picture => {
  const across = 'groups'
  return {
    name: 'growth-groups',
    title: 'More and more groups',
    notes: [
      'Hatchway with durability full, as people start it. The peers watch two directories of each group.',
      `Less than ${leastPercent} % of a core is drawn as that.`,
      ...endings(courses),
    ],
    svg: draw({
      title:
        'Start, memory, idle processor time and latency of Hatchway and its peers against the number of groups',
      names,
      columns: 2,
      panels: [
        {
          title: 'start of the process until it watches',
          across,
          series: seriesOf(courses, ({ readyMs }) => readyMs * 1000),
          format: duration,
        },
        {
          title: 'resident memory',
          across,
          series: seriesOf(courses, figures => figures.megabytes),
          format: megabytes,
        },
        {
          title: 'processor time while nothing happens, of a core',
          across,
          series: seriesOf(courses, ({ percent }) => percent, leastPercent),
          format: value => `${value} %`,
        },
        {
          title: 'idle latency, p50',
          across,
          series: seriesOf(courses, ({ latency }) => latency),
          format: duration,
        },
      ],
    }),
  }
}

/** less than this is nothing: a thousandth of a percent */
const leastPercent = 0.001

const filesPicture = (courses: readonly Course<FileFigures>[]): Picture => {
  const across = 'waiting files'
  return {
    name: 'growth-files',
    title: 'More and more waiting files',
    notes: [
      'Over 100 groups. Hatchway commits each with durability full; the others keep no promise. C and the loop rename files, chokidar and the poller remove them.',
      ...endings(courses),
    ],
    svg: draw({
      title: 'Time, rate and memory of Hatchway and its peers against the number of waiting files',
      names,
      columns: 2,
      panels: [
        {
          title: 'start of the process until the last is handled',
          across,
          series: seriesOf(courses, ({ seconds }) => seconds * 1e6),
          format: duration,
        },
        {
          title: 'files per second, start included',
          across,
          series: seriesOf(courses, ({ perSecond }) => perSecond),
          format: count,
        },
        {
          title: 'the most memory it had',
          across,
          series: seriesOf(courses, figures => figures.megabytes),
          format: megabytes,
        },
      ],
    }),
  }
}

const run = async (setting: Setting): Promise<RowResult> => {
  const groups = await growGroups(setting)
  const files = await growFiles(setting)
  return {
    lines: [],
    pictures: [groupsPicture(groups.courses), filesPicture(files.courses)],
    figures: { groups: groups.courses, files: files.courses },
    missing: [...new Set([...groups.missing, ...files.missing])],
  }
}

export const growth: Row = { name: 'growth', title: 'more and more groups, more and more waiting files', run }
