const names = (text: string): ReadonlySet<string> => new Set(text.trim().split(/\s+/))

/** Packages of runtimes and standard libraries, by their first segment or their first two. */
export const RUNTIME_PACKAGES = {
  java: names(`
    java javax jdk sun jakarta kotlin kotlinx scala groovy groovyjarjarasm clojure android dalvik libcore
    com.sun com.android org.codehaus org.xml org.w3c
  `),
  dotnet: names('System Microsoft.FSharp FSharp.Core Interop Internal MS mscorlib'),
  go: names(`
    archive bufio bytes cmp compress container context crypto database debug embed encoding errors expvar flag fmt go hash html
    image index internal io iter log maps math mime net os path plugin reflect regexp runtime slices sort strconv strings structs
    sync syscall testing text time unicode unique unsafe vendor weak
  `),
  rust: names('std core alloc test proc_macro std_detect backtrace_rs panic_unwind compiler_builtins'),
} as const

/** Packages of well-known frameworks, libraries and SDKs, where a frame has no path that shows it. */
export const DEPENDENCY_PACKAGES = {
  java: names(`
    akka androidx brave cats ch.qos co.elastic com.amazonaws com.codahale com.datadog com.datastax com.esotericsoftware com.facebook
    com.fasterxml com.google com.graphql com.h2database com.hazelcast com.ibm com.jcraft com.linecorp com.mchange
    com.microsoft com.mongodb com.mysql com.netflix com.newrelic com.nimbusds com.oracle com.rabbitmq com.squareup com.sksamuel
    com.typesafe com.vaadin com.vladsch com.zaxxer datadog dagger doobie feign freemarker fs2 graphql io.airlift io.advantageous
    io.circe io.confluent io.dropwizard io.envoyproxy io.fabric8 io.grpc io.helidon io.jaegertracing io.javalin io.jsonwebtoken
    io.ktor io.kubernetes io.lettuce io.micrometer io.micronaut io.minio io.netty io.opentelemetry io.opentracing io.perfmark
    io.projectreactor io.prometheus io.quarkus io.r2dbc io.reactivex io.rsocket io.sentry io.smallrye io.swagger io.undertow io.vavr
    io.vertx io.zipkin javassist jersey jodd junit lombok mu net.bytebuddy net.java net.jpountz net.logstash net.sf oracle.jdbc
    okhttp3 okio org.aopalliance org.antlr org.apache org.aspectj org.assertj org.bouncycastle org.eclipse org.ehcache org.elasticsearch
    org.flywaydb org.freemarker org.glassfish org.gradle org.h2 org.hamcrest org.hibernate org.hsqldb org.http4s org.infinispan
    org.javassist org.jboss org.jdbi org.jetbrains org.joda org.jooq org.json org.junit org.keycloak org.koin org.kohsuke
    org.liquibase org.mariadb org.mockito org.modelmapper org.mongodb org.mortbay org.mybatis org.neo4j org.objectweb org.opensearch
    org.osgi org.postgresql org.quartz org.reactivestreams org.redisson org.rocksdb org.scalatest org.slf4j org.springdoc
    org.springframework org.sqlite org.testng org.thymeleaf org.wildfly org.xerial org.yaml play.api play.core play.libs reactor
    redis.clients retrofit2 rx software.amazon spray springfox tomcat weblogic worker.org zio zipkin2
  `),
  dotnet: names(`
    AWSSDK Amazon Antlr AutoMapper Autofac Azure BouncyCastle Bugsnag Castle Confluent Dapper Datadog DotNetCore Elastic Elasticsearch
    EntityFramework FluentAssertions FluentValidation FSharp GraphQL Google Grpc Hangfire HotChocolate IdentityModel IdentityServer4
    Ionic Jint log4net MassTransit MediatR MessagePack Microsoft Moq MongoDB MySql MySqlConnector NHibernate NLog NServiceBus NUnit
    NewRelic Newtonsoft NodaTime Npgsql OpenTelemetry Oracle Orleans Polly Quartz RabbitMQ RazorEngine Refit RestSharp Sentry Serilog
    ServiceStack SixLabors SkiaSharp StackExchange Swashbuckle Unity UnityEngine UnityEditor Xamarin Xunit YamlDotNet
  `),
  rust: names(`
    actix actix_http actix_rt actix_server actix_service actix_web anyhow async_graphql async_std async_task axum axum_core
    backtrace bytes clap color_eyre crossbeam crossbeam_channel crossbeam_utils diesel eyre futures futures_channel futures_core
    futures_executor futures_util h2 http http_body hyper hyper_util lambda_http lambda_runtime log mio once_cell opentelemetry
    opentelemetry_otlp opentelemetry_sdk parking_lot poem prost rayon rayon_core redis reqwest rocket rustls sea_orm sentry sentry_core
    sentry_panic serde serde_json smol sqlx sqlx_core thiserror tokio tokio_rustls tokio_util tonic tower tower_http tower_layer
    tower_service tracing tracing_core tracing_futures tracing_subscriber warp
  `),
} as const
