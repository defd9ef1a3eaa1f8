// @ts-check
import { html } from '../core/h.js';
import { count } from '../core/format.js';
import { useAll } from '../core/resource.js';
import { common } from '../core/words.js';
import { useAttention } from '../parts/attention.js';
import { useMetrics } from '../parts/charts.js';
import { Enqueue } from '../parts/enqueue.js';
import { Queues } from '../parts/queues.js';
import { Title } from '../parts/states.js';

export default function QueuesPage() {
  const queues = useAll('job-queues', { topic: 'queues', every: 5000 });
  return html`<${Title} title=${common.queues} badge=${queues.data ? count(queues.data.length + queues.left) : null}><${Enqueue} /><//>
    <${Queues} list=${queues} metrics=${useMetrics()} attention=${useAttention().data} alone />`;
}
