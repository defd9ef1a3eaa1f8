/**
 * A module for Nest. It provides a Client and a Worker, finds the methods that JobHandler marks, and
 * runs the worker while the application runs.
 */
import {
  Module, SetMetadata, type BeforeApplicationShutdown, type DynamicModule, type InjectionToken, type ModuleMetadata, type OnApplicationBootstrap,
  type OptionalFactoryDependency, type Provider,
} from '@nestjs/common';
import { DiscoveryModule, DiscoveryService, MetadataScanner, Reflector } from '@nestjs/core';
import { Client } from './client.js';
import type { JobDefinition } from './define.js';
import type { HandlerOptions } from './handler.js';
import type { Job } from './job.js';
import type { ClientOptions, WorkerOptions } from './types.js';
import { Worker } from './worker.js';

/** The options of the module. */
export interface MillraceOptions {
  /** The broker, for client and worker. */
  url?: string | string[];
  client?: Omit<ClientOptions, 'url'>;
  worker?: Omit<WorkerOptions, 'url'>;
  /**
   * Whether this process runs jobs. Default true. With false, it only enqueues; handlers are found
   * nevertheless, for tests with a Fake.
   */
  run?: boolean;
}

/** Options that a factory returns. */
export interface MillraceAsyncOptions extends Pick<ModuleMetadata, 'imports'> {
  inject?: (InjectionToken | OptionalFactoryDependency)[];
  useFactory: (...args: any[]) => MillraceOptions | Promise<MillraceOptions>;
}

const HANDLER = 'millrace:handler';
const OPTIONS = Symbol('millrace:options');

interface Marked {
  job: string | JobDefinition;
  options: HandlerOptions;
}

/** Marks a method of a provider or controller as the handler of a class of jobs. */
export function JobHandler(job: string | JobDefinition, options: HandlerOptions = {}): MethodDecorator {
  return SetMetadata(HANDLER, { job, options } satisfies Marked);
}

/** Runs the worker from the start of the application to its shutdown. */
class Runner implements OnApplicationBootstrap, BeforeApplicationShutdown {
  #running: Promise<void> | undefined;

  constructor(
    private readonly discovery: DiscoveryService,
    private readonly scanner: MetadataScanner,
    private readonly reflector: Reflector,
    private readonly client: Client,
    private readonly worker: Worker,
    private readonly options: MillraceOptions,
  ) {}

  onApplicationBootstrap(): void {
    for (const wrapper of [...this.discovery.getProviders(), ...this.discovery.getControllers()]) {
      if (typeof wrapper.instance !== 'object' || wrapper.instance === null) continue;
      const prototype = Object.getPrototypeOf(wrapper.instance);
      for (const method of this.scanner.getAllMethodNames(prototype)) {
        const marked = this.reflector.get<Marked | undefined>(HANDLER, prototype[method]);
        if (!marked) continue;
        if (!wrapper.isDependencyTreeStatic()) {
          throw new TypeError(`millrace: ${wrapper.name} has the handler of ${String(marked.job)}, so it cannot be request-scoped: a job is no request`);
        }
        this.worker.handle(marked.job as string, (job: Job) => wrapper.instance[method](job), marked.options);
      }
    }
    if (this.options.run === false) return;
    this.#running = this.worker.run();
    // A worker that the broker refuses ends the program, as an application that cannot start does.
    this.#running.catch((error: unknown) => setImmediate(() => { throw error; }));
  }

  /** Lets running jobs end, for as long as the worker's stopTimeout. */
  async beforeApplicationShutdown(): Promise<void> {
    if (this.#running) {
      this.worker.stop();
      await this.#running.catch(() => {});
    }
    await this.client.close();
  }
}

const providers: Provider[] = [
  { provide: Client, useFactory: ({ url, client }: MillraceOptions) => new Client({ ...client, ...(url !== undefined && { url }) }), inject: [OPTIONS] },
  { provide: Worker, useFactory: ({ url, worker }: MillraceOptions) => new Worker({ ...worker, ...(url !== undefined && { url }) }), inject: [OPTIONS] },
  {
    provide: Runner,
    useFactory: (...args: ConstructorParameters<typeof Runner>) => new Runner(...args),
    inject: [DiscoveryService, MetadataScanner, Reflector, Client, Worker, OPTIONS],
  },
];

/** Provides Client and Worker to all modules of the application. */
export class MillraceModule {
  static forRoot(options: MillraceOptions = {}): DynamicModule {
    return MillraceModule.forRootAsync({ useFactory: () => options });
  }

  static forRootAsync({ imports = [], inject = [], useFactory }: MillraceAsyncOptions): DynamicModule {
    return {
      module: MillraceModule,
      global: true,
      imports: [DiscoveryModule, ...imports],
      providers: [{ provide: OPTIONS, useFactory, inject }, ...providers],
      exports: [Client, Worker],
    };
  }
}
Module({})(MillraceModule);
