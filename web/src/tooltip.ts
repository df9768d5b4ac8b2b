// The one tooltip of the page: for points of figures, and for anything with `data-tip`, by pointer and by keyboard.
//
// Checked: `hover shows a value`, `a dash says why`.
import { append, h, type Child } from './dom'

const EDGE = 8

export class Tooltip {
    private readonly box = h('div', { class: 'tooltip', id: 'tooltip', role: 'tooltip', hidden: true })

    constructor() {
        document.body.appendChild(this.box)
        const over = ({ target: of }: { target: EventTarget | null }): void => {
            const target = of instanceof Element ? of.closest<HTMLElement>('[data-tip]') : null
            if (!target) return
            const at = target.getBoundingClientRect()
            this.show([target.dataset.tip ?? ''], at.left + at.width / 2, at.top)
        }
        const out = (event: Event): void => {
            if (event.target instanceof Element && event.target.closest('[data-tip]')) this.hide()
        }
        document.addEventListener('pointerover', over)
        document.addEventListener('pointerout', out)
        document.addEventListener('focusin', over)
        document.addEventListener('focusout', out)
        document.addEventListener('keydown', (event) => {
            if (event.key === 'Escape') this.hide()
        })
        // What has the focus is scrolled to, and its words go along.
        window.addEventListener('scroll', () => {
            const isOpen = !this.box.hidden
            this.hide()
            if (isOpen && document.activeElement?.matches('[data-tip]')) over({ target: document.activeElement })
        }, { passive: true })
    }

    /** Shows content above a point of the window, or below where there is no room. */
    show(content: Child[], x: number, y: number): void {
        this.box.replaceChildren()
        append(this.box, content)
        this.box.hidden = false
        const { width, height } = this.box.getBoundingClientRect()
        const left = Math.min(Math.max(EDGE, x - width / 2), document.documentElement.clientWidth - width - EDGE)
        const top = y - height - 12 < EDGE ? y + 16 : y - height - 12
        this.box.style.transform = `translate(${Math.round(left)}px, ${Math.round(top)}px)`
    }

    hide(): void {
        this.box.hidden = true
    }
}
