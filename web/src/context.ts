// What every section is built from.
import { Figure, type FigureOptions } from './figure'
import type { Model } from './model'
import { link, type Route } from './route'
import type { Selection } from './selection'
import type { Tooltip } from './tooltip'

export class Context {
    private readonly figures: Figure[] = []
    private readonly others: (() => void)[] = []

    constructor(readonly model: Model, readonly selection: Selection, readonly tooltip: Tooltip, readonly route: Route, private readonly views: ReadonlySet<string>) {
        selection.onChange(() => this.redraw())
    }

    /** The link to a view, or to all rows where the run has no such view. */
    link(view: string, state: [string, string][] = []): string {
        return link(this.views.has(view) ? view : 'rows', state)
    }

    /** A figure that follows the selection. */
    figure(options: FigureOptions): Figure {
        const figure = new Figure(options, this.tooltip)
        this.figures.push(figure)
        return figure
    }

    /** Calls back when colours or the selection changed: for figures of another kind. */
    onRedraw(draw: () => void): void {
        this.others.push(draw)
    }

    redraw(): void {
        for (const figure of this.figures) figure.draw()
        for (const draw of this.others) draw()
    }
}
