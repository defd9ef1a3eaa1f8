/**
 * A module for Nest. It provides a Client and a Worker, finds the methods that JobHandler marks, and
 * runs the worker while the application runs.
 */
import {
  Module, SetMetadata, type DynamicModule, type InjectionToken, type ModuleMetadata, type OnApplicationBootstrap, type OnApplicationShutdown,
  type OnModuleDestroy, type OptionalFactoryDependency, type Provider,
} from '@nestjs/common';
import { DiscoveryModule, DiscoveryService, MetadataScanner, Reflector } from '@nestjs/core';
import { Client } from './client.js';
import type { JobDefinition } from './define.js';
import type { HandlerOptions } from './handler.js';
import type { Job } from './job.js';
import type { ClientOptions, WorkerOptions } from './types.js';
import { registryOf, Worker } from './worker.js';

/** The options of the module. */
export interface MillraceOptions {
  /** The broker, for client and worker. */
  url?: string | string[];
  client?: Omit<ClientOptions, 'url'>;
  worker?: Omit<WorkerOptions, 'url'>;
  /**
   * Whether this process runs jobs. Default true; it runs none if it has no handlers. With false, it
   * only enqueues; handlers are found nevertheless, for tests with a Fake.
   */
  run?: boolean;
}

/** Options that a factory returns. */
export interface MillraceAsyncOptions extends Pick<ModuleMetadata, 'imports'> {
  inject?: (InjectionToken | OptionalFactoryDependency)[];
  useFactory: (...args: any[]) => MillraceOptions | Promise<MillraceOptions>;
}

const HANDLER = 'millrace:handler';
const SIGNALS = ['SIGTERM', 'SIGINT'] as const;
const OPTIONS = Symbol('millrace:options');

interface Marked {
  job: string | JobDefinition;
  options: HandlerOptions;
}

/** Marks a method of a provider or controller as the handler of a class of jobs, or of several. */
export function JobHandler(job: string | JobDefinition, options: HandlerOptions = {}): MethodDecorator {
  return (_target, _key, descriptor: PropertyDescriptor) => {
    const others: Marked[] = new Reflector().get(HANDLER, descriptor.value) ?? [];
    SetMetadata(HANDLER, [...others, { job, options }])(_target, _key, descriptor);
  };
}

/** Runs the worker from the start of the application to its shutdown. */
class Runner implements OnApplicationBootstrap, OnModuleDestroy, OnApplicationShutdown {
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
      if (wrapper.isAlias || typeof wrapper.instance !== 'object' || wrapper.instance === null) continue;
      const prototype = Object.getPrototypeOf(wrapper.instance);
      for (const method of this.scanner.getAllMethodNames(prototype)) {
        for (const { job, options } of this.reflector.get<Marked[] | undefined>(HANDLER, prototype[method]) ?? []) {
          if (!wrapper.isDependencyTreeStatic() || wrapper.isTransient) {
            throw new TypeError(`millrace: ${wrapper.name} has the handler of ${String(job)}, so it cannot be request-scoped or transient: a job is no request`);
          }
          this.worker.handle(job as string, (each: Job) => wrapper.instance[method](each), options);
        }
      }
    }
    // A worker without handlers would take the jobs of other programs, and fail them.
    if (this.options.run === false || registryOf(this.worker).classes.length === 0) return;
    this.#running = this.worker.run();
    // A worker that the broker refuses ends the program, as an application that cannot start does.
    this.#running.catch((error: unknown) => setImmediate(() => { throw error; }));
  }

  /**
   * Lets running jobs end, for as long as the worker's stopTimeout. The next SIGTERM or SIGINT ends
   * the wait.
   */
  async onModuleDestroy(): Promise<void> {
    if (!this.#running) return;
    const hurry = () => this.worker.stop();
    this.worker.stop();
    for (const signal of SIGNALS) process.on(signal, hurry);
    await this.#running.catch(() => {});
    for (const signal of SIGNALS) process.off(signal, hurry);
  }

  /** Requests may enqueue until the server is closed. */
  async onApplicationShutdown(): Promise<void> {
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
