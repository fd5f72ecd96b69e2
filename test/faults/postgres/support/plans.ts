/** The plans that statements really ran, as auto_explain tells. */
import type pg from 'pg'
import { expect } from 'vitest'

/** A node of EXPLAIN (FORMAT JSON, ANALYZE). */
export interface PlanNode {
  readonly 'Node Type': string
  readonly 'Relation Name'?: string
  readonly 'Actual Rows': number
  readonly 'Actual Loops': number
  readonly 'Rows Removed by Filter'?: number
  readonly 'Rows Removed by Index Recheck'?: number
  readonly Plans?: readonly PlanNode[]
}

/** Every plan that a statement ran, nested ones too, as auto_explain tells. */
export function plansOf(
  client: pg.Client,
  text: string,
  values: readonly unknown[] = [],
): Promise<PlanNode[]> {
  return plansDuring(client, () => client.query(text, [...values]))
}

/** The same for everything that the connection runs meanwhile. */
export async function plansDuring(client: pg.ClientBase, work: () => Promise<unknown>): Promise<PlanNode[]> {
  const plans: PlanNode[] = []
  const listen = ({ message }: { message?: string | undefined }): void => {
    const json = message?.slice(message.indexOf('{'))
    if (message?.includes('plan:') && json !== undefined)
      plans.push((JSON.parse(json) as { Plan: PlanNode }).Plan)
  }
  await client.query(`load 'auto_explain'; set auto_explain.log_min_duration = 0; set auto_explain.log_analyze = on;
    set auto_explain.log_nested_statements = on; set auto_explain.log_format = json; set auto_explain.log_level = notice`)
  client.on('notice', listen)
  try {
    await work()
  } finally {
    client.off('notice', listen)
    await client.query('set auto_explain.log_min_duration = -1')
  }
  expect(plans.length, 'auto_explain told of plans').toBeGreaterThan(0)
  return plans
}

/** The nodes of a plan that read one of these tables, or a partition of one. */
export function scansOf(node: PlanNode, tables: ReadonlySet<string>): PlanNode[] {
  const own = tables.has(tableOf(node)) && node['Node Type'].endsWith(' Scan') ? [node] : []
  return [...own, ...(node.Plans ?? []).flatMap((child) => scansOf(child, tables))]
}

/** The table that a node reads, without the day of its partition. */
export function tableOf(node: PlanNode): string {
  return (node['Relation Name'] ?? '').replace(/_(rest|\d{8})$/, '')
}

/** Rows that a scan has looked at, whether it took them or not. */
export function touched(scan: PlanNode): number {
  const removed = (scan['Rows Removed by Filter'] ?? 0) + (scan['Rows Removed by Index Recheck'] ?? 0)
  return (scan['Actual Rows'] + removed) * scan['Actual Loops']
}
