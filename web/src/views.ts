// The views of the page: one for each question, with the sections that answer it. A view without an answer is not there.
//
// Checked: `each view opens by its link`.
import type { Context } from './context'
import type { Model } from './model'
import { anatomy } from './sections/anatomy'
import { answer } from './sections/answer'
import { coldstart } from './sections/coldstart'
import { conditions } from './sections/conditions'
import { contention } from './sections/contention'
import { cost } from './sections/cost'
import { distributions } from './sections/distributions'
import { files } from './sections/files'
import { findings } from './sections/findings'
import { keyFigures } from './sections/head'
import { heat } from './sections/heat'
import { kernels } from './sections/kernels'
import { ladder } from './sections/ladder'
import { fits, latency, queueing } from './sections/latency'
import { overhead } from './sections/overhead'
import { rows } from './sections/rows'
import { steadiness } from './sections/steadiness'
import { sweep } from './sections/sweep'
import { throughput } from './sections/throughput'

export interface Part {
    id: string
    make: (context: Context) => HTMLElement | null
}

export interface ViewSpec {
    id: string
    /** As the bar has it. */
    name: string
    /** The question that it answers. */
    question: string
    sections: Part[]
    /** Whether its figures follow the filters. */
    isFiltered: boolean
    has: (model: Model) => boolean
}

const of = (id: string, make: Part['make']): Part => ({ id, make })
const always = (): boolean => true

export const VIEWS: ViewSpec[] = [
    { id: 'overview', name: 'Overview', question: 'What is the answer?', sections: [of('answer', answer), of('key', keyFigures)], isFiltered: false, has: always },
    { id: 'findings', name: 'Findings', question: 'What can be done about it?', sections: [of('findings', findings)], isFiltered: false, has: always },
    { id: 'pairs', name: 'Pairs', question: 'Which host, link or direction is bad?', sections: [of('pairs', heat)], isFiltered: false, has: ({ view }) => (view.heat?.maps.length ?? 0) > 0 },
    { id: 'latency', name: 'Latency', question: 'How long does a message take, and where?', sections: [of('latency', latency), of('anatomy', anatomy), of('distributions', distributions), of('fits', fits)], isFiltered: true, has: (model) => model.has('latency_ns') || model.view.anatomy.length > 0 || model.view.distributions.length > 0 },
    { id: 'throughput', name: 'Throughput', question: 'How much comes through, and what takes the rest?', sections: [of('throughput', throughput), of('sweep', sweep), of('overhead', overhead), of('cost', cost)], isFiltered: true, has: (model) => model.rows({ quantity: 'throughput_bps' }).some(({ probe }) => probe !== 'files') || model.view.sweep.length > 0 },
    { id: 'coldstart', name: 'Cold start', question: 'What does the first message pay for?', sections: [of('coldstart', coldstart)], isFiltered: true, has: (model) => model.has('startup_ns') },
    { id: 'libraries', name: 'Libraries', question: 'What do message libraries cost?', sections: [of('ladder', ladder)], isFiltered: true, has: ({ view }) => view.library.length > 0 },
    { id: 'files', name: 'Files', question: 'What do file services reach, and what holds them?', sections: [of('files', files)], isFiltered: true, has: ({ view }) => view.files.length > 0 },
    { id: 'contention', name: 'At once', question: 'What do workloads do to each other?', sections: [of('contention', contention)], isFiltered: false, has: ({ view }) => (view.contention?.matrices.length ?? 0) > 0 },
    { id: 'kernels', name: 'Kernels', question: 'What do programs lose?', sections: [of('kernels', kernels)], isFiltered: false, has: ({ view }) => view.kernels.length > 0 },
    { id: 'load', name: 'Load', question: 'What does background traffic add?', sections: [of('load', queueing)], isFiltered: false, has: ({ view }) => view.queueing.length > 0 },
    { id: 'trust', name: 'Trust', question: 'Did the run hold still?', sections: [of('steadiness', steadiness)], isFiltered: true, has: ({ view }) => view.launch_medians.length > 0 || view.interference.length > 0 },
    { id: 'conditions', name: 'Conditions', question: 'Under which conditions was it measured?', sections: [of('conditions', conditions)], isFiltered: false, has: always },
    { id: 'rows', name: 'Rows', question: 'What exactly was measured?', sections: [of('rows', rows)], isFiltered: false, has: always },
]
