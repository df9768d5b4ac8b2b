// The pages beside a run's: by the schema of what the page holds.
import type { ComparedRuns, HistoryOfRuns, RunList } from '../view'
import { compared } from './compare'
import { history } from './history'
import { runs } from './runs'

/** What a page holds that is not a run's. */
export type Other = RunList | ComparedRuns | HistoryOfRuns

/** The schemas of these. */
export const OTHERS: Other['schema'][] = ['sonde-runs/1', 'sonde-compare/1', 'sonde-history/1']

export function showOther(page: HTMLElement, data: Other): void {
    if (data.schema === 'sonde-runs/1') runs(page, data)
    else if (data.schema === 'sonde-compare/1') compared(page, data)
    else history(page, data)
}
